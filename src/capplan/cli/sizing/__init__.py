"""What to buy: demand, size, proposal and verify, with what they print."""
