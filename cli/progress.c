/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include "common.h"

static struct {
    const char *label;
    const char *unit;
    uint64_t total, done;
    double started, drawn;
    bool active, visible;
} bar;

void progress_begin(const char *label, uint64_t total, const char *unit)
{
    bar.label = label;
    bar.unit = unit;
    bar.total = total;
    bar.done = 0;
    bar.started = cli_seconds();
    bar.drawn =
        bar.started; /* the first tenth of a second shows nothing, so quick work stays quiet */
    bar.active = cli.verbosity >= 0 && !cli.json && cli_is_terminal(stderr);
    bar.visible = false;
}

static void draw(double now)
{
    enum { WIDTH = 30 };
    char done[24], total[24], rate[24], cells[WIDTH + 1];
    double share = bar.total > 0 ? (double)bar.done / (double)bar.total : 1;
    int filled = (int)(share * WIDTH);
    double elapsed = now - bar.started;
    for (int i = 0; i < WIDTH; ++i)
        cells[i] = i < filled ? '#' : '.';
    cells[WIDTH] = '\0';
    fprintf(stderr, "\r\033[K%s [%s] %3.0f%%  ", bar.label, cells, share * 100);
    if (bar.unit == NULL)
        fprintf(stderr, "%s of %s, %s/s", cli_format_bytes(bar.done, done),
                cli_format_bytes(bar.total, total),
                cli_format_bytes((uint64_t)((double)bar.done / (elapsed > 0 ? elapsed : 1)), rate));
    else
        fprintf(stderr, "%llu of %llu %s", (unsigned long long)bar.done,
                (unsigned long long)bar.total, bar.unit);
    fflush(stderr);
    bar.visible = true;
    bar.drawn = now;
}

void progress_add(uint64_t steps)
{
    bar.done += steps;
    if (!bar.active)
        return;
    double now = cli_seconds();
    if (now - bar.drawn >= 0.1)
        draw(now);
}

void progress_clear(void)
{
    if (bar.visible)
        fputs("\r\033[K", stderr);
    bar.visible = false;
}

void progress_end(void)
{
    progress_clear();
    bar.active = false;
}
