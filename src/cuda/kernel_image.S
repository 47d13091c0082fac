/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One cubin as read-only data: assembled once a kernel with KERNEL_NAME and KERNEL_CUBIN (a string)
 * defined.
 */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define IMAGE JOIN(kernel_image_, KERNEL_NAME)

    .section .rodata
    .balign 64
    .globl IMAGE
    .hidden IMAGE
    .type IMAGE, %object
IMAGE:
    .incbin KERNEL_CUBIN
    .size IMAGE, . - IMAGE
    .section .note.GNU-stack, "", %progbits
