"""The `kizami` command."""
