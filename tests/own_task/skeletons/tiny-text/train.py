print("start here")
