"""What one caller can send to harm the others, and that it does not."""
