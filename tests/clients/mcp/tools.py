"""The tools that the MCP server offers, in its order."""

TOOLS = [
    "memory_save",
    "memory_get",
    "memory_search",
    "memory_list",
    "memory_delete",
    "note_add",
    "note_update",
    "note_delete",
    "note_list",
    "note_edit",
    "block_list",
    "block_update",
    "passage_store",
    "passage_search",
    "passage_get",
]
