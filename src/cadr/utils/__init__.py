"""Files, text, numbers and options: what every room needs and none owns."""
