"""What may be seen on the wire: sums of which nobody sees the parts."""
