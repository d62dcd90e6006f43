"""Which objects of torch and other libraries a script means, and what frameworks do in its place."""
