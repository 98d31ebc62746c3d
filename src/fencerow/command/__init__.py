"""What every command needs: options, output, the database."""
