/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HOISTWAY_CONTEXTS_H
#define HOISTWAY_CONTEXTS_H

#include "hoistway_iosched.h"

struct hw_context *hw_context_get(struct request_queue *q, struct hw_queue *hw);
struct hw_context *hw_context_new(struct hw_queue *hw, pid_t pid, gfp_t gfp);
void hw_context_put(struct hw_context *context);
int hw_context_register(struct hw_context *context);
void hw_context_end(struct hw_context *context);
void hw_context_set_ioprio(struct hw_context *context, u16 ioprio);
void hw_exit_icq(struct io_cq *icq);
int hw_contexts_init(void);
void hw_contexts_exit(void);

#endif
