"""The tools that the MCP server offers, in its order."""

TOOLS = [
    "search",
    "versions",
    "memory_save",
    "memory_get",
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
    "passage_get",
    "passage_list",
    "passage_delete",
]
