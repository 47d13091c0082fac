/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences between proxies.  PTX ISA 9.7.13.4.
 */
#include "emulator/machine.h"

void emu_fence_proxy_async(emu_site *site)
{
    thread *self = thread_enter(site);
    if (!site_removed(site)) {
        clock_join(&the_machine.clocks, self->f, self->vc);
        thread_release(self);
    }
}

/* Global memory has no clocks: what the block's asynchronous operations see of it is not followed.
 */
void emu_fence_proxy_async_global(emu_site *site)
{
    thread_enter(site);
}
