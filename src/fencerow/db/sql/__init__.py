"""The named queries that the engines and locks of this room ask themselves; they know no table of ours."""
