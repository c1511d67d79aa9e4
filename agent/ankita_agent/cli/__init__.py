"""The command line: arguments, output, exit codes. The only floor that prints or exits."""
