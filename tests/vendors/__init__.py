"""Model vendors on the loopback: each speaks its vendor's wire format and refuses what the vendor would refuse."""
