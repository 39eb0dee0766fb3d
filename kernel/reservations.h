/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HOISTWAY_RESERVATIONS_H
#define HOISTWAY_RESERVATIONS_H

#include "hoistway_iosched.h"

ssize_t hw_reservations_show(struct elevator_queue *eq, char *page);
ssize_t hw_reservations_store(struct elevator_queue *eq, const char *page, size_t count);
void hw_reserve_for_context(struct hw_context *context);
void hw_reserve_for_group(struct hw_queue *hw, struct hw_group *group);
void hw_reservation_end(struct hw_queue *hw, pid_t pid, u64 serial);
void hw_reservations_free(struct hw_queue *hw);

#endif
