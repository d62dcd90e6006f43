"""What reaches people and systems outside: takes what the store has queued and sees that it arrives.

Channels are found by folder. A relay runs them in threads of their own, so that no slow mail server holds up a hint.
"""
