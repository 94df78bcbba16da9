"""Parameters of Cassandra on an encrypted virtual network, with prior and source of each."""

from __future__ import annotations

from capplan.models.language.parameter import Parameter

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("replica_work", 1.0, "1", "fitted", 0.7, "wide prior: a replica works 0.25 to 4 times its coordinator"),
    Parameter("client_message", 0.2, "1", "fitted", 1.0, "wide prior: OpenVPN in user space, a message, 0.03 to 1.5"),
    Parameter("internode_message", 0.03, "1", "fitted", 1.0, "wide prior: TLS in user space, a message, 0.004 to 0.2"),
    Parameter(
        "kernel_message", 0.01, "1", "fitted", 1.0, "wide prior: a message on the virtual network, 0.001 to 0.07"
    ),
    Parameter(
        "kernel_cipher_message", 0.01, "1", "fitted", 1.0, "wide prior: the same for encrypting it there, 0.001 to 0.07"
    ),
    Parameter(
        "cipher_byte",
        2.4e-5,
        "1",
        "prior",
        0.7,
        "12 ns a byte (OpenVPN's default cipher without AES instructions, about 100 MB/s a core: Keijser, OpenVPN "
        "Cookbook, 2017; and its checksum) of a plain operation of 0.5 ms (a guess, 0.1 to 2 ms)",
    ),
)
"""Costs are in unencrypted operations with one replica, per message and byte at one end of a link."""
