/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/conflict.h"

#include "emulator/emu_wgmma.h"
#include "emulator/machine.h"

/* "wgmma of warp 5", "thread 3 of block 0": who an agent is, into text. */
static const char *agent_text(const agent_info *agent, char *text, size_t bytes)
{
    const thread *self = agent->owner;
    const warp *tensor = agent->owner;
    switch (agent->kind) {
    case AGENT_TENSOR: snprintf(text, bytes, "wgmma of warp %u", tensor->in_block); break;
    case AGENT_COPY: snprintf(text, bytes, "an asynchronous copy"); break;
    case AGENT_STORE_READ:
        snprintf(text, bytes, "a bulk store of thread %u", self->in_block);
        break;
    case AGENT_CP_ASYNC: snprintf(text, bytes, "cp.async of thread %u", self->in_block); break;
    default: snprintf(text, bytes, "thread %u", self->in_block); break;
    }
    return text;
}

static const char *class_of(const agent_info *earlier, bool fence_only, const observer *by,
                            bool is_write)
{
    const agent_info *now = &the_machine.agents[touch_agent(by->self)];
    if (fence_only) {
        return "e";
    }
    switch (earlier->kind) {
    case AGENT_COPY:
    case AGENT_CP_ASYNC: return "d";
    case AGENT_STORE_READ: return "g";
    case AGENT_TENSOR: {
        /* A writer that runs wgmma itself has taken its own wait for everybody's. */
        const warp *writer = by->thread->warp;
        return writer != earlier->owner && tensor_used(writer) ? "c2" : "c";
    }
    default: break;
    }
    if (now->kind == AGENT_THREAD) {
        return "race";
    }
    return is_write ? "c" : "e";
}

void conflict_report(const block *owner, uint32_t address, touch earlier, bool was_write,
                     const observer *by, bool is_write)
{
    const agent_info *agent = &the_machine.agents[touch_agent(earlier)];
    const bool fence_only = by->vc[touch_agent(earlier)] >= touch_clock(earlier);
    char who[48], now[48];
    agent_text(agent, who, sizeof who);
    agent_text(&the_machine.agents[touch_agent(by->self)], now, sizeof now);
    const finding_key key = {class_of(agent, fence_only, by, is_write),
                             by->site,
                             NULL,
                             site_numbered(touch_site(earlier)),
                             by->thread->block->index,
                             by->thread->in_block};
    const char *why = "with no order between the two";
    if (fence_only) {
        why = "ordered, but without fence_proxy_async before the asynchronous access";
    } else if (by->thread->vc[touch_agent(earlier)] >= touch_clock(earlier)) {
        why =
            "known to the warp by now, but not at its last wgmma_fence, as of which operands count";
    } else if (touch_clock(earlier) == TOUCH_IN_FLIGHT) {
        why = "which is in flight";
    } else if (agent->kind == AGENT_COPY) {
        why = "complete, but its phase was not waited for";
    } else if (agent->kind == AGENT_TENSOR) {
        why = "not waited for on the way from it to here";
    }
    report_add(the_machine.report, &key,
               "%s %s shared memory of block %u at smem_base() + 0x%x, "
               "%s by %s, %s",
               now, is_write ? "writes" : "reads", owner->index,
               address - (uint32_t)((SMEM_START + 1023) / 1024 * 1024),
               was_write ? "written" : "read", who, why);
}
