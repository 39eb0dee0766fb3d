/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HOISTWAY_NOTES_H
#define HOISTWAY_NOTES_H

#include "hoistway_iosched.h"

void hw_notes(struct hw_queue *hw);
void hw_notes_end(struct hw_queue *hw);

static inline bool hw_notes_wanted(struct hw_queue *hw)
{
#ifdef CONFIG_BLK_DEV_IO_TRACE
	return unlikely(READ_ONCE(hw->q->blk_trace));
#else
	return false;
#endif
}

#endif
