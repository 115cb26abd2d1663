"""What is remembered: whole transactions named by intent, behind one protocol."""
