/* Runs of one body, LANES of them side by side: deck motion, RK4 and statistics.
 *
 * The generated part (above) defines SIZES, prepare(), rate() and measure() on the type real. Everything here is
 * plain IEEE arithmetic in a fixed order, compiled without contraction or fast-math: a run gives the same bytes in
 * any lane, thread, process and build. Own sine and cosine for the same reason, and because libm has no lanes.
 */

/* ---------------------------------------------------------------- deck motion */

typedef struct {
  int64_t runs, used, steps, every, first, keep_start;
  double step;
  const double *parameters, *start;                       /* runs x PARAMETERS, runs x STATES */
  int64_t deck;                                           /* 0 samples, 1 components, 2 splines */
  const double *channels;                                 /* 0: runs x (2 steps + 1) x 9 */
  int64_t components, stride, points;                     /* 1: half steps between nodes; nodes per interpolation */
  const double *frequency, *wave, *place;                 /* runs x K, runs x K x 12, runs x 10 */
  const int64_t *mask;                                    /* K, bit m: motion m takes part */
  const double *weights;                                  /* stride x points */
  const double *const *spline;                            /* 2: per run, knots-1 x 6 x 4, cubic first */
  const int64_t *knots;
  const double *spline_rate, *spline_start;               /* per run: knots per s, s */
  int64_t edges;
  const double *outline;                                  /* runs x edges x 5: corner, edge, 1 / length²; or 0 edges */
  const double *lowest;                                   /* per run: centre of mass height that counts as fallen */
  int64_t gimbals;
  const int64_t *gimbal;
  double gimbal_limit;
  double *states;                                         /* runs x rows x STATES, or NULL */
  double *outputs;                                        /* runs x rows x OUTPUTS, or NULL */
  double *final;                                          /* runs x STATES, or NULL */
  int64_t signals;                                        /* statistics of these, or 0 */
  const int64_t *signal;                                  /* column: states first, then outputs */
  int64_t bins;
  const double *low, *high;                               /* per signal, of the histogram */
  double refractory;                                      /* s */
  double *moments;                                        /* runs x signals x 5: count, mean, M2, min, max */
  int32_t *histogram;                                     /* runs x signals x (bins + 2) */
  double *ending;                                         /* runs x 3: end time, why, events */
  double *over_time;                                      /* rows x signals x 3: count, mean, M2 over runs, or NULL */
  int64_t *stopped;                                       /* one run: steps done when a cable went taut or slack, or NULL */
} Job;

#define MOST_POINTS 16

/* Nine channels of LANES decks at one half step, advanced in order. */
typedef struct {
  int64_t next;                                           /* half step that comes next */
  real node[MOST_POINTS][9];                              /* channels at the nodes around it */
} Deck;

static inline real load(const double *base, int64_t run, int64_t last, int64_t width, int64_t index) {
  real value;
  for (int lane = 0; lane < LANES; lane++)
    LANE(value, lane) = base[(run + lane < last ? run + lane : last) * width + index];
  return value;
}

typedef struct {
  real *frequency, *wave, place[10];                      /* steady (6), station (3), gravity */
  real *phase, *sine, *cosine;
} Waves;

static void feel(const Waves *waves, const real *m, real *out);

/* Channels at one instant from the sums themselves: translations'' (3), angles, rates, accelerations (3 each). */
static void wave_node(const Job *job, const Waves *waves, int64_t half_step, real *channels) {
  real out[12];
  const int64_t count = job->components;
  const double time = (double)half_step * (job->step / 2);
  for (int64_t i = 0; i < count; i++) waves->phase[i] = waves->frequency[i] * time;
  sines(waves->phase, waves->sine, waves->cosine, count);
  for (int i = 0; i < 12; i++) out[i] = real_of(0.0);
  for (int i = 0; i < 3; i++) out[3 + i] = waves->place[3 + i];
  for (int64_t i = 0; i < count; i++) {
    const real s = waves->sine[i], c = waves->cosine[i], w = waves->frequency[i];
    const real *amplitude = waves->wave + 12 * i;
    for (int motion = 0; motion < 6; motion++) {
      if (!(job->mask[i] >> motion & 1)) continue;
      const real value = amplitude[2 * motion] * c + amplitude[2 * motion + 1] * s;
      const real bend = w * w * value;
      if (motion < 3) { out[motion] -= bend; continue; }
      out[motion] += value;
      out[motion + 3] += w * (amplitude[2 * motion + 1] * c - amplitude[2 * motion] * s);
      out[motion + 6] -= bend;
    }
  }
  feel(waves, out, channels);
}

/* Motions at the station to what the person feels; equations of deck.py (bryant_rates and SineDeck.sample). */
static void feel(const Waves *waves, const real *m, real *out) {
  real angle[4] = {m[3], m[4], m[5], real_of(0.0)}, s[4], c[4];
  sines(angle, s, c, LANES == 1 ? 4 : 3);                 /* one run packs four into a vector */
  const real s1 = s[0], c1 = c[0], s2 = s[1], c2 = c[1], s3 = s[2], c3 = c[2];
  const real r1 = m[6], r2 = m[7], r3 = m[8], a1 = m[9], a2 = m[10], a3 = m[11];
  const real w1 = c2 * c3 * r1 + s3 * r2, w2 = c3 * r2 - c2 * s3 * r1, w3 = s2 * r1 + r3;
  const real e1 = c2 * c3 * a1 + s3 * a2 - (s2 * c3 * r2 + c2 * s3 * r3) * r1 + c3 * r3 * r2;
  const real e2 = c3 * a2 - c2 * s3 * a1 + (s2 * s3 * r2 - c2 * c3 * r3) * r1 - s3 * r3 * r2;
  const real e3 = s2 * a1 + a3 + c2 * r2 * r1;
  const real x = waves->place[6], y = waves->place[7], z = waves->place[8];
  const real ax = m[0], ay = m[1], az = m[2] + waves->place[9];
  /* rotation transposed times lifted acceleration */
  const real f1 = c2 * c3 * ax + (c1 * s3 + s1 * s2 * c3) * ay + (s1 * s3 - c1 * s2 * c3) * az;
  const real f2 = (c1 * c3 - s1 * s2 * s3) * ay - c2 * s3 * ax + (s1 * c3 + c1 * s2 * s3) * az;
  const real f3 = s2 * ax - s1 * c2 * ay + c1 * c2 * az;
  const real u1 = w2 * z - w3 * y, u2 = w3 * x - w1 * z, u3 = w1 * y - w2 * x;
  out[0] = w1; out[1] = w2; out[2] = w3;
  out[3] = e1; out[4] = e2; out[5] = e3;
  out[6] = f1 + (e2 * z - e3 * y) + (w2 * u3 - w3 * u2);
  out[7] = f2 + (e3 * x - e1 * z) + (w3 * u1 - w1 * u3);
  out[8] = f3 + (e1 * y - e2 * x) + (w1 * u2 - w2 * u1);
}

static void wave_channels(const Job *job, const Waves *waves, Deck *deck, real *out) {
  const int64_t half_step = deck->next, node = half_step / job->stride, part = half_step % job->stride;
  const int64_t points = job->points, here = points / 2 - 1;
  const int begin = half_step == 2 * job->first;
  if (begin || part == 0) {                               /* nodes on both sides surround this half step */
    if (!begin) memmove(deck->node[0], deck->node[1], sizeof(real) * 9 * (size_t)(points - 1));
    for (int64_t i = begin ? 0 : points - 1; i < points; i++)
      wave_node(job, waves, (node - here + i) * job->stride, deck->node[i]);
  }
  if (part == 0) { memcpy(out, deck->node[here], sizeof(real) * 9); return; }
  const double *w = job->weights + points * part;
  for (int k = 0; k < 9; k++) out[k] = w[0] * deck->node[0][k];
  for (int64_t i = 1; i < points; i++)
    for (int k = 0; k < 9; k++) out[k] += w[i] * deck->node[i][k];
}

static void spline_channels(const Job *job, int64_t run, int64_t half_step, real *out) {
  for (int lane = 0; lane < LANES; lane++) {
    const int64_t which = run + lane < job->used ? run + lane : job->used - 1;
    const double time = job->spline_start[which] + (double)half_step * (job->step / 2);
    int64_t knot = (int64_t)(time * job->spline_rate[which]);
    if (knot > job->knots[which] - 2) knot = job->knots[which] - 2;
    if (knot < 0) knot = 0;
    const double x = time - (double)knot / job->spline_rate[which];
    const double *c = job->spline[which] + 24 * knot;
    for (int i = 0; i < 6; i++, c += 4) {
      LANE(out[i < 3 ? i : i + 3], lane) = ((c[0] * x + c[1]) * x + c[2]) * x + c[3];
      if (i < 3) LANE(out[i + 3], lane) = (3 * c[0] * x + 2 * c[1]) * x + c[2];
    }
  }
}

static inline void channels_at(const Job *job, const Waves *waves, Deck *deck, int64_t run, real *out) {
  if (job->deck == 1) wave_channels(job, waves, deck, out);
  else if (job->deck == 2) spline_channels(job, run, deck->next, out);
  else {
    const int64_t row = deck->next - 2 * job->first, width = (2 * job->steps + 1) * 9;
    for (int i = 0; i < 9; i++) out[i] = load(job->channels, run, job->used - 1, width, row * 9 + i);
  }
  deck->next++;
}

/* ---------------------------------------------------------------- integration */

/* Not inlined: four copies would overflow the instruction cache. */
static __attribute__((noinline)) void slope(const real *k, const real *x, const real *channels, double time, real *out) {
  real s[PADDED], c[PADDED];
  const real now = real_of(time);
  sines(x, s, c, LANES == 1 ? PADDED : JOINTS);
  rate(k, x, s, c, channels, &now, out);
}

/* Classical Runge-Kutta, in the order of operations of simulate.integrate. */
static void advance(const real *k, real *x, const real *before, const real *middle, const real *after, double time,
                    double step) {
  real k1[STATES + 1], k2[STATES + 1], k3[STATES + 1], k4[STATES + 1], y[STATES + PADDED];
  const double half = step / 2, sixth = step / 6;
  for (int i = STATES; i < STATES + PADDED; i++) y[i] = real_of(0.0);
  slope(k, x, before, time, k1);
  for (int i = 0; i < STATES; i++) y[i] = x[i] + half * k1[i];
  slope(k, y, middle, time + half, k2);
  for (int i = 0; i < STATES; i++) y[i] = x[i] + half * k2[i];
  slope(k, y, middle, time + half, k3);
  for (int i = 0; i < STATES; i++) y[i] = x[i] + step * k3[i];
  slope(k, y, after, time + step, k4);
  for (int i = 0; i < STATES; i++) x[i] += sixth * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
}

/* Outputs of measure() (torques, accelerations, force, moment, centre of mass, holding moments), then the centre of
 * pressure (2) and the stance margin: equations of contact.py. */
static void observed(const Job *job, const real *k, const real *x, const real *channels, double time, int64_t run,
                     real *out) {
  real s[PADDED], c[PADDED];
  const real now = real_of(time);
  sines(x, s, c, LANES == 1 ? PADDED : JOINTS);
  measure(k, x, s, c, channels, &now, out);
  const real *force = out + 2 * JOINTS, *moment = force + 3;
  real *pressure = out + MEASURES;
  for (int lane = 0; lane < LANES; lane++) {
    const double up = LANE(force[2], lane) > 0 ? LANE(force[2], lane) : NAN;
    const double px = -LANE(moment[1], lane) / up, py = LANE(moment[0], lane) / up;
    LANE(pressure[0], lane) = px;
    LANE(pressure[1], lane) = py;
    const int64_t which = run + lane < job->used ? run + lane : job->used - 1;
    const double *edge = job->outline + which * job->edges * 5;
    double nearest = INFINITY, depth = INFINITY;
    for (int64_t e = 0; e < job->edges; e++, edge += 5) {
      const double ex = edge[2], ey = edge[3], ox = px - edge[0], oy = py - edge[1], inward = ex * oy - ey * ox;
      double along = (ox * ex + oy * ey) * edge[4];
      along = along < 0 ? 0 : along > 1 ? 1 : along;
      const double dx = ox - along * ex, dy = oy - along * ey, distance2 = dx * dx + dy * dy;
      if (distance2 < nearest) nearest = distance2;
      if (inward < depth) depth = inward;
    }
    LANE(pressure[2], lane) = job->edges && up == up ? (depth >= 0 ? sqrt(nearest) : -sqrt(nearest)) : NAN;
  }
}

#if PROJECTED
/* Lengths of rods and taut cables without what the integrator let them drift: two steps of Newton's method. */
static void put_back(const real *k, real *x, const real *channels, double time) {
  real s[PADDED], c[PADDED], out[2 * JOINTS + 1];
  const real now = real_of(time);
  for (int round = 0; round < 2; round++) {
    sines(x, s, c, LANES == 1 ? PADDED : JOINTS);
    project(k, x, s, c, channels, &now, out);
    for (int i = 0; i < (round ? 2 : 1) * JOINTS; i++) x[i] = out[i];   /* speeds once the lengths are right */
  }
}
#endif

#if CABLES
/* Whether a cable wants to go taut or slack at this state. */
static int alarmed(const real *k, const real *x, const real *channels, double time) {
  real s[PADDED], c[PADDED], out[CABLES];
  const real now = real_of(time);
  int found = 0;
  sines(x, s, c, LANES == 1 ? PADDED : JOINTS);
  alarm(k, x, s, c, channels, &now, out);
  for (int i = 0; i < CABLES; i++)
    for (int lane = 0; lane < LANES; lane++) found |= LANE(out[i], lane) > 0;
  return found;
}
#endif

/* ---------------------------------------------------------------- statistics while a run goes on */

typedef struct {
  int active[LANES], outside[LANES];
  double last_event[LANES];
} Watch;

static void include(double *moments, double value) {
  const double count = moments[0] + 1, difference = value - moments[1];
  moments[0] = count;
  moments[1] += difference / count;
  moments[2] += difference * (value - moments[1]);
}

static void reduce(const Job *job, Watch *watch, const real *x, const real *out, double time, int64_t run,
                   int64_t row) {
  for (int lane = 0; lane < LANES && run + lane < job->used; lane++) {
    double *ending = job->ending + 3 * (run + lane);
    if (!watch->active[lane]) continue;
    int why = 0;
    for (int i = 0; i < STATES; i++) if (!isfinite(LANE(x[i], lane))) why = 1;
    for (int64_t i = 0; i < job->gimbals && !why; i++)
      if (fabs(LANE(x[job->gimbal[i]], lane)) > job->gimbal_limit) why = 2;
    if (why) { watch->active[lane] = 0; ending[1] = why; continue; }
    ending[0] = time;
    const int outside = job->edges && !(LANE(out[MEASURES + 2], lane) >= 0);   /* or no pressure at all */
    if (outside && !watch->outside[lane] && time - watch->last_event[lane] >= job->refractory) {
      ending[2] += 1;
      watch->last_event[lane] = time;
    }
    watch->outside[lane] = outside;
    for (int64_t i = 0; i < job->signals; i++) {
      const int64_t column = job->signal[i];
      const double value = column < STATES ? LANE(x[column], lane) : LANE(out[column - STATES], lane);
      if (!(value == value)) continue;
      double *moments = job->moments + ((run + lane) * job->signals + i) * 5;
      include(moments, value);
      if (value < moments[3]) moments[3] = value;
      if (value > moments[4]) moments[4] = value;
      const double place = (value - job->low[i]) * ((double)job->bins / (job->high[i] - job->low[i]));
      const int64_t bin = place < 0 ? 0 : place >= (double)job->bins ? job->bins + 1 : 1 + (int64_t)place;
      job->histogram[((run + lane) * job->signals + i) * (job->bins + 2) + bin]++;
      if (job->over_time) include(job->over_time + (row * job->signals + i) * 3, value);
    }
    if (LANE(out[2 * JOINTS + 8], lane) < job->lowest[run + lane]) { watch->active[lane] = 0; ending[1] = 3; }
  }
}

/* ---------------------------------------------------------------- all runs of a job */

static void store(double *base, int64_t run, int64_t last, int64_t width, int64_t offset, const real *values, int count) {
  for (int lane = 0; lane < LANES && run + lane < last; lane++)
    for (int i = 0; i < count; i++) base[(run + lane) * width + offset + i] = LANE(values[i], lane);
}

EXPORT int64_t posture_run(const Job *job) {
  const int64_t count = job->components, rows = job->steps / job->every + job->keep_start;
  real *memory = NULL;
  Waves waves = {0};
  if (job->deck == 1) {
    memory = aligned_alloc(64, sizeof(real) * (size_t)(16 * count + 4 * 12 + 64) / 64 * 64 + 4096);
    if (!memory) return 1;
    waves.frequency = memory;
    waves.wave = memory + count;
    waves.phase = waves.wave + 12 * count;
    waves.sine = waves.phase + count;
    waves.cosine = waves.sine + count;
  }
  for (int64_t run = 0; run < job->used; run += LANES) {
    real p[PARAMETERS + 1], k[CONSTANTS], x[STATES + PADDED], channels[3][9], out[OUTPUTS + 1];
    Deck deck;
    Watch watch;
    const int64_t last = job->used - 1;
    for (int i = 0; i < PARAMETERS; i++) p[i] = load(job->parameters, run, last, PARAMETERS, i);
    for (int i = 0; i < STATES; i++) x[i] = load(job->start, run, last, STATES, i);
    for (int i = STATES; i < STATES + PADDED; i++) x[i] = real_of(0.0);
    if (job->deck == 1) {
      for (int64_t i = 0; i < count; i++) waves.frequency[i] = load(job->frequency, run, last, count, i);
      for (int64_t i = 0; i < 12 * count; i++) waves.wave[i] = load(job->wave, run, last, 12 * count, i);
      for (int64_t i = 0; i < 10; i++) waves.place[i] = load(job->place, run, last, 10, i);
    }
    for (int lane = 0; lane < LANES; lane++) {
      watch.active[lane] = 1;
      watch.outside[lane] = 0;
      watch.last_event[lane] = -INFINITY;
    }
    prepare(p, k);
    deck.next = 2 * job->first;
    channels_at(job, &waves, &deck, run, channels[2]);
    int64_t row = 0;
    const int watched = job->outputs || job->signals;
    for (int64_t index = 0; index <= job->steps; index++) {
      const double time = (double)(job->first + index) * job->step;
      if (index % job->every == 0 && (index > 0 || job->keep_start)) {
        if (job->states) store(job->states, run, job->used, rows * STATES, row * STATES, x, STATES);
        if (watched) observed(job, k, x, channels[2], time, run, out);
        if (job->outputs) store(job->outputs, run, job->used, rows * OUTPUTS, row * OUTPUTS, out, OUTPUTS);
        if (job->signals) reduce(job, &watch, x, out, time, run, row);
        row++;
        int alive = !job->signals;
        for (int lane = 0; lane < LANES && run + lane < job->used; lane++) alive |= watch.active[lane];
        if (!alive) break;
      }
      if (index == job->steps) break;
      for (int i = 0; i < 9; i++) channels[0][i] = channels[2][i];
      channels_at(job, &waves, &deck, run, channels[1]);
      channels_at(job, &waves, &deck, run, channels[2]);
#if CABLES
      real before[STATES];
      memcpy(before, x, sizeof before);
#endif
      advance(k, x, channels[0], channels[1], channels[2], time, job->step);
#if PROJECTED
      put_back(k, x, channels[2], time + job->step);
#endif
#if CABLES
      if (job->stopped && alarmed(k, x, channels[2], time + job->step)) {   /* the caller does this step */
        memcpy(x, before, sizeof before);
        *job->stopped = index;
        break;
      }
#endif
    }
    if (job->final) store(job->final, run, job->used, STATES, 0, x, STATES);
  }
  free(memory);
  return 0;
}

#if LANES == 1
/* Outputs at given states and channels, row by row; parameters and outline of one run. */
EXPORT void posture_observe(const Job *job, int64_t rows, const double *times, const double *states,
                            const double *channels, double *outputs) {
  real p[PARAMETERS + 1], k[CONSTANTS], x[STATES + PADDED], nine[9], out[OUTPUTS + 1];
  for (int i = 0; i < PARAMETERS; i++) p[i] = real_of(job->parameters[i]);
  prepare(p, k);
  for (int i = STATES; i < STATES + PADDED; i++) x[i] = real_of(0.0);
  for (int64_t row = 0; row < rows; row += LANES) {
    for (int i = 0; i < STATES; i++) x[i] = load(states, row, rows - 1, STATES, i);
    for (int i = 0; i < 9; i++) nine[i] = load(channels, row, rows - 1, 9, i);
    observed(job, k, x, nine, times[row], 0, out);
    store(outputs, row, rows, OUTPUTS, 0, out, OUTPUTS);
  }
}

/* Time derivative of one state: for checks. */
EXPORT void posture_rate(const Job *job, double time, const double *state, const double *channels, double *out) {
  real k[CONSTANTS], x[STATES + PADDED] = {0};
  prepare(job->parameters, k);
  memcpy(x, state, STATES * sizeof(double));
  slope(k, x, channels, time, out);
}
#endif
