"""Fetches a URL again and again, a connection each: steady_client.py URL FOLDER. Proxy and authorities as urllib finds
them. A line for each request, `ok` or what went wrong; ends when FOLDER/stop exists, or after a minute."""
import os
import sys
import time
import urllib.request

url, folder = sys.argv[1:3]
end = time.monotonic() + 60
while not os.path.exists(f"{folder}/stop") and time.monotonic() < end:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            print("ok" if answer.status == 200 and answer.read() == b"steady\n" else "odd", flush=True)
    except OSError as error:
        print(f"failed: {error}", flush=True)
    time.sleep(0.02)
