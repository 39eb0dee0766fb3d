/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HOISTWAY_GROUPS_H
#define HOISTWAY_GROUPS_H

#include "hoistway_iosched.h"

int hw_groups_init(void);
void hw_groups_exit(void);
struct hw_context *hw_group_enter(struct hw_queue *hw, struct hw_context *context, struct request *rq);
void hw_groups_register(struct hw_queue *hw);
void hw_groups_free(struct hw_queue *hw);

#endif
