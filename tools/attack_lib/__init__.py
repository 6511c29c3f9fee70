"""A campaign against the doppler command: inputs, faults and moments that nobody would choose by hand."""
