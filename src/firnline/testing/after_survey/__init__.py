"""What every engine must do with the files of its surveys."""
