"""The pure floor: facts in, decision out. No clock, disk, process or random source is reached from here."""
