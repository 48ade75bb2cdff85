"""What readers leave behind who do not go by a catalog: pointers in the folder, offsets of streams."""
