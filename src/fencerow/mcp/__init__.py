"""An MCP server: assistants look at jobs, and change some if they are allowed to. The guide: docs/guide/mcp.md."""
