"""From a file to text with sections: `find_files` says which files, `parse_file` reads one."""

from graphrag_agent.retrieval.ingestion.parsing.files import find_files
from graphrag_agent.retrieval.ingestion.parsing.parsed_document import ParsedDocument, Section
from graphrag_agent.retrieval.ingestion.parsing.registry import SUPPORTED_SUFFIXES, parse_file

__all__ = ["SUPPORTED_SUFFIXES", "ParsedDocument", "Section", "find_files", "parse_file"]
