/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HOISTWAY_QUEUE_H
#define HOISTWAY_QUEUE_H

#include "hoistway_iosched.h"

extern unsigned int hw_contexts_max;
extern unsigned int hw_groups_max;
extern const struct elevator_mq_ops hw_ops;

#endif
