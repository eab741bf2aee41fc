"""The compiled engine: one body under one control law on a moving deck, from formulas to machine code.

pin.Model → skeleton (tree, numbers apart) → symbolic (CasADi) → codegen (C on lanes) → library (compiler, cache)
→ machine (runs of a program) → stepper (one simulation), ensemble (thousands), gradient, frames (inverse dynamics).
Ligaments, muscles, rods and cables: lines (numbers), pulling (CasADi), events (cables that go taut or slack).
"""
