"""The mean time of a read with one queue for all servers (M/M/c), by Erlang's formula C."""

from math import factorial

servers, rate_per_s, service_s = 4, 300, 0.010
load = rate_per_s * service_s
waiting = load**servers / factorial(servers) * servers / (servers - load)
share = waiting / (waiting + sum(load**busy / factorial(busy) for busy in range(servers)))
wait_s = share * service_s / (servers - load)
print(f"{share:.1%} of the reads wait; the mean wait of all reads is {1000 * wait_s:.2f} ms")
print(f"mean time of a read: {1000 * (wait_s + service_s):.2f} ms")
