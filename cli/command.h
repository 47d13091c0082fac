/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_COMMAND_H
#define HALFBYTE_CLI_COMMAND_H

/*
 * The subcommands, one file each. argv[0] is replaced by "halfbyte NAME"; argv[1..argc-1] are the
 * arguments after the name. Each returns an exit code (enum cli_exit).
 */
#define CLI_COMMAND_MAP(XX)                                                                        \
    XX(info, "version, executors, code paths and formats of this build")                           \
    XX(inspect, "tensors of a checkpoint, its quantisation and its faults")                        \
    XX(quantize, "quantise the linear layers of a safetensors model")                              \
    XX(pack, "pack the int4 experts of an MoE layer for the GPU, and back")                        \
    XX(gemm, "multiply, and print errors and a checksum of the output bits")                       \
    XX(check, "prove that the arithmetic is exact on this machine")                                \
    XX(race, "run the GPU kernels on the CPU, under every schedule")                               \
    XX(bench, "time products beside what the machine gives")                                       \
    XX(tune, "find the fastest kernel of each shape, for a file that the library reads")

#define XX(name, summary) int command_##name(int argc, char **argv);
CLI_COMMAND_MAP(XX)
#undef XX

/* `halfbyte help [TOPIC]`. */
int command_help(int argc, char **argv);

#endif
