"""What everything must do that copies files from one store to another: subclass a contract, and pytest runs it."""
