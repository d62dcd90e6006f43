"""Say one grade to people and machines: terminal, HTML, JSON, JUnit. Decides nothing and runs nothing."""
