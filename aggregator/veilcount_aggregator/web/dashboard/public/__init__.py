"""Published figures: pages and files for anybody, served or exported to any web host."""
