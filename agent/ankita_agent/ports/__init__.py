"""What the app needs of the world, as Protocols: each says what it promises and what it does not."""
