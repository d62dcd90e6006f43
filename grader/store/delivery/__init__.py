"""What is to reach somebody outside: mails, webhooks, and when each is tried again."""
