"""What all commands share with the terminal: options, output, and the process itself."""
