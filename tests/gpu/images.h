/* SPDX-License-Identifier: Apache-2.0 */
/* The cubins of the tests' own kernels, linked into the program. */
#ifndef HALFBYTE_TESTS_GPU_IMAGES_H
#define HALFBYTE_TESTS_GPU_IMAGES_H

extern const unsigned char kernel_image_instructions[];
extern const unsigned char kernel_image_oracle[];
extern const unsigned char kernel_image_wgmma[];
extern const unsigned char kernel_image_race_scale_wait3_of_4[];
extern const unsigned char kernel_image_race_scale_wait3_each[];
extern const unsigned char kernel_image_race_loop_wait1_of_2[];
extern const unsigned char kernel_image_race_a_loop_local[];
extern const unsigned char kernel_image_race_smem_rewritten[];

#endif
