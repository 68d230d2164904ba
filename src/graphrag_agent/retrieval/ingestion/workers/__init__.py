"""Processes that read other people's files for us: limited in time and memory, and replaceable."""
