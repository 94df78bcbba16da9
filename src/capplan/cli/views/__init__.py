"""How answers are shown to people: tables and sentences on a terminal."""
