"""Every error that the package raises on purpose.

    GraphragError
    ├── SettingsError            a setting, argument or environment value can't be used
    │   ├── MissingExtraError    the feature needs an optional dependency
    │   └── QuestionTooLongError the question doesn't fit into the model's window
    ├── KnowledgeBaseError       the knowledge base can't do what was asked
    │   ├── ParseError           one file can't be turned into text
    │   ├── DocumentNotFoundError  no such document in the scope
    │   ├── StoreLockedError     another process holds the embedded store
    │   └── EmbedderMismatchError  the stored vectors came from another embedder
    ├── ModelUnavailableError    no chat model can be built or reached
    ├── ToolError                a tool call went wrong; the model reads it
    │   ├── ToolArgumentError    the model may mend the arguments and call again
    │   └── ToolFailedError      the model should know and not repeat the call
    ├── CheckpointerError        threads can't be read or written
    └── ThreadError              a conversation can't be continued as asked
        └── ThreadBusyError      another turn is running on the thread

A message names the value and says what to do about it.
"""

from __future__ import annotations


class GraphragError(Exception):
    """Base of the package's errors."""


class SettingsError(GraphragError):
    """A setting, argument or environment value can't be used."""


class MissingExtraError(SettingsError):
    """The feature needs a package that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra {extra!r}: pip install 'graphrag-agent[{extra}]'")
        self.extra = extra


class QuestionTooLongError(SettingsError):
    """The question alone doesn't fit into the model's window; it was not asked."""


class KnowledgeBaseError(GraphragError):
    """The knowledge base can't do what was asked."""


class ParseError(KnowledgeBaseError):
    """A file can't be turned into text; the ingest of the other files goes on."""


class DocumentNotFoundError(KnowledgeBaseError):
    """No such document, or none that this scope may see."""


class StoreLockedError(KnowledgeBaseError):
    """Another process has the embedded store open."""


class EmbedderMismatchError(KnowledgeBaseError):
    """The stored vectors came from another embedder than the one given."""


class ModelUnavailableError(GraphragError):
    """No chat model can be built from the given name, or it can't be reached."""


class ToolError(GraphragError):
    """A tool call went wrong; the message is for the model."""

    retryable = False


class ToolArgumentError(ToolError):
    """The arguments don't fit; the model may mend them and call again."""


class ToolFailedError(ToolError):
    """The tool could not do its work."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class CheckpointerError(GraphragError):
    """Threads can't be read or written: the database, or the event loop that the checkpointer is used from."""


class ThreadError(GraphragError):
    """A conversation can't be continued as asked."""


class ThreadBusyError(ThreadError):
    """Another turn is running on the thread; the same request may go through later."""
