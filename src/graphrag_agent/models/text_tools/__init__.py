"""Tool calls written as text: for models without native calls, and for those that forget about theirs."""
