"""From sea state to missed steps: waves, the ship in them, the deck under a person, and what it does to them.

``sea`` (waves) and ``hull`` (how a ship answers them) make ``motion`` (a deck for any simulation) and ``response``
(its statistics without simulating); ``record`` reads measured motion instead. ``interruptions`` counts lost balance,
``sickness`` motion sickness, ``criteria`` compares with limits; ``sweep`` does it all over headings, speeds and seas,
``polar`` draws that. ``stance`` places the person, ``settings`` reads all of it from TOML.

Heading, everywhere: the direction in which the waves travel, seen from the bow and turning to port. 0° are following
seas, 90° waves that run from starboard to port, 180° head seas, 270° waves from port to starboard.
"""
