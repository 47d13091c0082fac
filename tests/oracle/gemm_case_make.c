/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from what runs cases, so that a program without the test framework can make them. */
#include "oracle/gemm_case.h"

#include <string.h>

void case_make(struct gemm_case *c, struct random *r, const struct case_kind *kind,
               const struct case_options *options)
{
    bool masked = kind->form == FORM_MASKED_ALL || kind->form == FORM_MASKED_COUNTS;
    memset(c, 0, sizeof *c);
    c->kind = *kind;
    c->operands = halfbyte_operands_init();
    case_draw_problem(c, r, options);
    c->operands.m = options->m ? options->m : random_between(r, 1, masked ? 9 : 24);
    c->problem.m_max = c->operands.m + random_below(r, 2) * random_below(r, 50);
    c->operands.expected_m = random_below(r, 3);
    case_make_groups(c, r);
    case_make_operands(c, r, options);
}
