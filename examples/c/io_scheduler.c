/* The queue of hoistway behind a mutex, since only one thread at a time may use it, and I/O threads
 * that wait for its requests. The mutex is not held during I/O. */
#define _POSIX_C_SOURCE 200809L
#include "io_scheduler.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct io_scheduler {
	struct io_scheduler_config config;
	struct hoistway_queue *queue;
	pthread_mutex_t lock;
	pthread_cond_t work; /* the queue may have a request, or the threads are to end */
	bool stopping;
	unsigned started;
	pthread_t threads[];
};

/* Ends the program if a call failed: only a wrong use of this file leads to that. */
static void check(const char *call, int32_t status)
{
	if (status >= 0)
		return;
	fprintf(stderr, "%s: %s\n", call, hoistway_status_text(status));
	abort();
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Does what the library deferred, to be called after each call: it asks for another run of the
 * queue. HOISTWAY_WORK_WAKE does not occur, because without `nr_requests` no process sleeps. */
static void deferred_work(struct io_scheduler *scheduler)
{
	struct hoistway_work item;
	while (hoistway_next_work(scheduler->queue, &item) == HOISTWAY_OK)
		pthread_cond_signal(&scheduler->work);
}

/* Waits for a request, the next timer of the library or the end. */
static void wait_for_work(struct io_scheduler *scheduler)
{
	uint64_t at_ns = UINT64_MAX; /* it stays so without a timer */
	hoistway_next_timer(scheduler->queue, &at_ns);
	struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000u), .tv_nsec = (long)(at_ns % 1000000000u)};
	pthread_cond_timedwait(&scheduler->work, &scheduler->lock, &at);
}

static void serve(struct io_scheduler *scheduler, const struct hoistway_request *next)
{
	struct io_request *request = (struct io_request *)(uintptr_t)next->token;
	uint64_t token; /* without merging there is one, that of the request */
	uint32_t tokens;
	pthread_cond_signal(&scheduler->work); /* another thread looks for the next request meanwhile */
	pthread_mutex_unlock(&scheduler->lock);
	scheduler->config.execute(request);
	pthread_mutex_lock(&scheduler->lock);
	check("hoistway_complete", hoistway_complete(scheduler->queue, next->id, now_ns(), &token, 1, &tokens));
	deferred_work(scheduler);
	pthread_mutex_unlock(&scheduler->lock);
	scheduler->config.completed(request);
	pthread_mutex_lock(&scheduler->lock);
}

static void *io_thread(void *argument)
{
	struct io_scheduler *scheduler = argument;
	pthread_mutex_lock(&scheduler->lock);
	while (!scheduler->stopping) {
		struct hoistway_request next;
		uint64_t at_ns;
		while (hoistway_next_timer(scheduler->queue, &at_ns) == HOISTWAY_OK && at_ns <= now_ns())
			hoistway_timer(scheduler->queue, now_ns());
		int32_t status = hoistway_next(scheduler->queue, now_ns(), &next);
		check("hoistway_next", status);
		deferred_work(scheduler);
		if (status == HOISTWAY_OK)
			serve(scheduler, &next);
		else
			wait_for_work(scheduler);
	}
	pthread_mutex_unlock(&scheduler->lock);
	return NULL;
}

/* Makes the queue. Returns false if no elevator has the name, or without memory. */
static bool create_queue(struct io_scheduler *scheduler)
{
	const char *name = scheduler->config.elevator;
	int32_t elevator = hoistway_elevator_index(name, strlen(name));
	struct hoistway_capacity capacity = {.requests = scheduler->config.requests, .contexts = scheduler->config.contexts};
	struct hoistway_config config;
	hoistway_config_default(&config);
	config.layer = 5; /* the block layer of Linux 6.1 */
	/* The capacity limits the requests; each bio is a request, and is queued at once. */
	config.nr_requests = config.plugging = config.merging = 0;
	size_t size = hoistway_queue_size(&capacity);
	scheduler->queue = elevator < 0 ? NULL : aligned_alloc(HOISTWAY_ALIGNMENT, size);
	return scheduler->queue &&
	       !hoistway_queue_init(scheduler->queue, size, &capacity, &config, (uint32_t)elevator, now_ns());
}

struct io_scheduler *io_scheduler_create(const struct io_scheduler_config *config)
{
	struct io_scheduler *scheduler = calloc(1, sizeof *scheduler + config->io_threads * sizeof(pthread_t));
	if (!scheduler)
		return NULL;
	scheduler->config = *config;
	pthread_condattr_t monotonic; /* timers of the library are in the clock of now_ns() */
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&scheduler->work, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&scheduler->lock, NULL);
	bool ok = create_queue(scheduler);
	for (; ok && scheduler->started < config->io_threads; scheduler->started += ok)
		ok = !pthread_create(&scheduler->threads[scheduler->started], NULL, io_thread, scheduler);
	if (!ok)
		io_scheduler_destroy(scheduler);
	return ok ? scheduler : NULL;
}

hoistway_context io_scheduler_open(struct io_scheduler *scheduler, uint32_t number, uint32_t level)
{
	hoistway_context context;
	pthread_mutex_lock(&scheduler->lock);
	int32_t status = hoistway_context_create(scheduler->queue, number, HOISTWAY_CLASS_BE, level, 0, &context);
	check("hoistway_context_create", status);
	pthread_mutex_unlock(&scheduler->lock);
	return context;
}

void io_scheduler_close(struct io_scheduler *scheduler, hoistway_context context)
{
	pthread_mutex_lock(&scheduler->lock);
	hoistway_context_exit(scheduler->queue, context, now_ns());
	deferred_work(scheduler);
	pthread_mutex_unlock(&scheduler->lock);
}

void io_scheduler_submit(struct io_scheduler *scheduler, struct io_request *request)
{
	struct hoistway_submitted submitted;
	request->bio.token = (uintptr_t)request;
	pthread_mutex_lock(&scheduler->lock);
	check("hoistway_submit", hoistway_submit(scheduler->queue, &request->bio, now_ns(), &submitted));
	deferred_work(scheduler);
	pthread_cond_signal(&scheduler->work); /* without plugging the queue is run after each bio */
	pthread_mutex_unlock(&scheduler->lock);
}

void io_scheduler_destroy(struct io_scheduler *scheduler)
{
	pthread_mutex_lock(&scheduler->lock);
	scheduler->stopping = true;
	pthread_cond_broadcast(&scheduler->work);
	pthread_mutex_unlock(&scheduler->lock);
	while (scheduler->started > 0)
		pthread_join(scheduler->threads[--scheduler->started], NULL);
	pthread_cond_destroy(&scheduler->work);
	pthread_mutex_destroy(&scheduler->lock);
	free(scheduler->queue);
	free(scheduler);
}
