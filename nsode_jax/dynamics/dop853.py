"""Dormand and Prince's method of order 8 with dense output, compiled once.

The method and its coefficients: Hairer, Norsett, Wanner, "Solving Ordinary
Differential Equations I" (1993), sections II.5 and II.6, program DOP853.

A scalar autonomous equation allows what a general one does not:
  - f never changes its sign along a solution, for where f is 0 the solution
    rests. A step after which the sign is another one has jumped over a rest
    point, a pole or a gap in the domain, and is repeated with a shorter one.
  - A solution that slows down with a rest point just in front of it stays there.
    It need not be followed with the tiny steps that make stable rest points
    stiff for an explicit method. Stiffness has no other source in one dimension,
    so there is neither a test for it nor an implicit method to fall back to.
  - Whether a solution blows up shows in f alone, long before the steps vanish.
"""

from __future__ import annotations

import dataclasses
import math

import numba
import numpy as np
from jaxtyping import Float, Int64

from nsode_jax.dynamics.stack_machine import FINGERPRINT, Program, run

SUCCESS = 0
FAILED = 1
"""The solution blows up or leaves the domain of f."""
TOO_MANY_STEPS = 2

# fmt: off
# Row s: weights of the earlier slopes in stage s; the last three rows are the
# stages of the dense output, and row 12 is the step itself.
_A_ROWS = (
    (),
    (5.26001519587677318785587544488e-2,),
    (1.97250569845378994544595329183e-2, 5.91751709536136983633785987549e-2),
    (2.95875854768068491816892993775e-2, 0, 8.87627564304205475450678981324e-2),
    (2.41365134159266685502369798665e-1, 0, -8.84549479328286085344864962717e-1,
     9.24834003261792003115737966543e-1),
    (3.7037037037037037037037037037e-2, 0, 0, 1.70828608729473871279604482173e-1,
     1.25467687566822425016691814123e-1),
    (3.7109375e-2, 0, 0, 1.70252211019544039314978060272e-1,
     6.02165389804559606850219397283e-2, -1.7578125e-2),
    (3.70920001185047927108779319836e-2, 0, 0, 1.70383925712239993810214054705e-1,
     1.07262030446373284651809199168e-1, -1.53194377486244017527936158236e-2,
     8.27378916381402288758473766002e-3),
    (6.24110958716075717114429577812e-1, 0, 0, -3.36089262944694129406857109825,
     -8.68219346841726006818189891453e-1, 2.75920996994467083049415600797e1,
     2.01540675504778934086186788979e1, -4.34898841810699588477366255144e1),
    (4.77662536438264365890433908527e-1, 0, 0, -2.48811461997166764192642586468,
     -5.90290826836842996371446475743e-1, 2.12300514481811942347288949897e1,
     1.52792336328824235832596922938e1, -3.32882109689848629194453265587e1,
     -2.03312017085086261358222928593e-2),
    (-9.3714243008598732571704021658e-1, 0, 0, 5.18637242884406370830023853209,
     1.09143734899672957818500254654, -8.14978701074692612513997267357,
     -1.85200656599969598641566180701e1, 2.27394870993505042818970056734e1,
     2.49360555267965238987089396762, -3.0467644718982195003823669022),
    (2.27331014751653820792359768449, 0, 0, -1.05344954667372501984066689879e1,
     -2.00087205822486249909675718444, -1.79589318631187989172765950534e1,
     2.79488845294199600508499808837e1, -2.85899827713502369474065508674,
     -8.87285693353062954433549289258, 1.23605671757943030647266201528e1,
     6.43392746015763530355970484046e-1),
    (5.42937341165687622380535766363e-2, 0, 0, 0, 0, 4.45031289275240888144113950566,
     1.89151789931450038304281599044, -5.8012039600105847814672114227,
     3.1116436695781989440891606237e-1, -1.52160949662516078556178806805e-1,
     2.01365400804030348374776537501e-1, 4.47106157277725905176885569043e-2),
    (5.61675022830479523392909219681e-2, 0, 0, 0, 0, 0, 2.53500210216624811088794765333e-1,
     -2.46239037470802489917441475441e-1, -1.24191423263816369010140626e-1,
     1.5329179827876569731206322685e-1, 8.20105229563468988491666602057e-3,
     7.56789766054569976138603589584e-3, -8.298e-3),
    (3.18346481635021405060768473261e-2, 0, 0, 0, 0, 2.83009096723667755288322961402e-2,
     5.35419883074385676223797384372e-2, -5.49237485713909884646569340306e-2, 0, 0,
     -1.08347328697249322858509316994e-4, 3.82571090835658412954920192323e-4,
     -3.40465008687404560802977114492e-4, 1.41312443674632500278074618366e-1),
    (-4.28896301583791923408573538692e-1, 0, 0, 0, 0, -4.69762141536116384314449447206,
     7.68342119606259904184240953878, 4.06898981839711007970213554331,
     3.56727187455281109270669543021e-1, 0, 0, 0, -1.39902416515901462129418009734e-3,
     2.9475147891527722389556272149, -9.15095847217987001081870187138),
)
# The errors of the embedded methods of orders 3 and 5.
_ERROR_3 = (0.244094488188976377952755905512, 0.733846688281611857341361741547,
            0.220588235294117647058823529412e-1)
_ERROR_5 = (
    0.1312004499419488073250102996e-1, 0, 0, 0, 0, -0.1225156446376204440720569753e+1,
    -0.4957589496572501915214079952, 0.1664377182454986536961530415e+1,
    -0.3503288487499736816886487290, 0.3341791187130174790297318841,
    0.8192320648511571246570742613e-1, -0.2235530786388629525884427845e-1,
)
# The four highest coefficients of the dense output.
_D_ROWS = (
    (-0.84289382761090128651353491142e+1, 0, 0, 0, 0, 0.56671495351937776962531783590,
     -0.30689499459498916912797304727e+1, 0.23846676565120698287728149680e+1,
     0.21170345824450282767155149946e+1, -0.87139158377797299206789907490,
     0.22404374302607882758541771650e+1, 0.63157877876946881815570249290,
     -0.88990336451333310820698117400e-1, 0.18148505520854727256656404962e+2,
     -0.91946323924783554000451984436e+1, -0.44360363875948939664310572000e+1),
    (0.10427508642579134603413151009e+2, 0, 0, 0, 0, 0.24228349177525818288430175319e+3,
     0.16520045171727028198505394887e+3, -0.37454675472269020279518312152e+3,
     -0.22113666853125306036270938578e+2, 0.77334326684722638389603898808e+1,
     -0.30674084731089398182061213626e+2, -0.93321305264302278729567221706e+1,
     0.15697238121770843886131091075e+2, -0.31139403219565177677282850411e+2,
     -0.93529243588444783865713862664e+1, 0.35816841486394083752465898540e+2),
    (0.19985053242002433820987653617e+2, 0, 0, 0, 0, -0.38703730874935176555105901742e+3,
     -0.18917813819516756882830838328e+3, 0.52780815920542364900561016686e+3,
     -0.11573902539959630126141871134e+2, 0.68812326946963000169666922661e+1,
     -0.10006050966910838403183860980e+1, 0.77771377980534432092869265740,
     -0.27782057523535084065932004339e+1, -0.60196695231264120758267380846e+2,
     0.84320405506677161018159923784e+2, 0.11992291136182789328035130030e+2),
    (-0.25693933462703749003312586129e+2, 0, 0, 0, 0, -0.15418974869023643374053993627e+3,
     -0.23152937917604549567536039109e+3, 0.35763911791061412378285349910e+3,
     0.93405324183624310003907691704e+2, -0.37458323136451633156875139351e+2,
     0.10409964950896230045147246184e+3, 0.29840293426660503123344363579e+2,
     -0.43533456590011143754432175058e+2, 0.96324553959188282948394950600e+2,
     -0.39177261675615439165231486172e+2, -0.14972683625798562581422125276e+3),
)
# fmt: on


def _matrix(rows: tuple[tuple[float, ...], ...]) -> Float[np.ndarray, "row slope"]:
    matrix = np.zeros((len(rows), 16))
    for row, weights in zip(matrix, rows):
        row[: len(weights)] = weights
    return matrix


_A = _matrix(_A_ROWS)
_D = _matrix(_D_ROWS)
_E3 = _A[12].copy()
_E3[[0, 8, 11]] -= _ERROR_3
_E5 = _matrix((_ERROR_5,))[0]
_EPSILON = 2.0**-52

_SAFETY = 0.9
_MIN_FACTOR, _MAX_FACTOR = 1 / 3, 6.0
"""Limits of how much a step differs from the one before."""

_RETRY_FACTOR = 0.2
"""Of a step after one that met undefined values or should not have been taken."""

_LONGEST_STEP = 1 / 16
"""Of the whole time: longer ones can miss a narrow feature of f altogether."""

_MAX_DEFECT = 10.0
"""How much the dense output may violate the equation, in units of the tolerance.

The estimated error of a step says nothing about what lies within; on random
equations the latter was up to 3,000 times the tolerance without this check.
"""
_DEFECT_AT = 0.3
"""Where in a step that is checked; 0.5 finds less."""

_RELATIVE_SHARE, _MIN_RTOL = 0.01, 2e-14
"""Of the relative tolerance asked for.

The quality check bounds the error of the derivative, whatever the size of y. At
order 8 this costs 15% more steps, and twice as many growing solutions pass.
"""

_REST = 0.01
"""A rest point at most this part of the tolerance away is as good as reached."""

# How `_explodes` samples f: how often, how far apart, and how much f/y must grow.
_EXPLOSION_SAMPLES, _EXPLOSION_RATIO, _EXPLOSION_GROWTH = 40, 1.3, 1.03


@numba.njit(nogil=True, error_model="numpy")
def _slope(instructions, memory, k, stage, y, h):
    """f in one stage of the step of length h from y."""
    total = 0.0
    for j in range(stage):
        total += _A[stage, j] * k[j]
    return run(instructions, memory, y + h * total)


@numba.njit(nogil=True, error_model="numpy")
def _step(instructions, memory, k, y, h):
    """The result of a step, from k[0] = f(y); sets k[5] to k[11].

    Written out, because a loop over the table takes twice as long.
    """
    a = _A_ROWS
    k0 = k[0]
    k1 = run(instructions, memory, y + h * (a[1][0] * k0))
    k2 = run(instructions, memory, y + h * (a[2][0] * k0 + a[2][1] * k1))
    k3 = run(instructions, memory, y + h * (a[3][0] * k0 + a[3][2] * k2))
    k4 = run(instructions, memory, y + h * (a[4][0] * k0 + a[4][2] * k2 + a[4][3] * k3))
    k5 = run(instructions, memory, y + h * (a[5][0] * k0 + a[5][3] * k3 + a[5][4] * k4))
    k6 = run(
        instructions, memory, y + h * (a[6][0] * k0 + a[6][3] * k3 + a[6][4] * k4 + a[6][5] * k5)
    )
    k7 = run(
        instructions,
        memory,
        y + h * (a[7][0] * k0 + a[7][3] * k3 + a[7][4] * k4 + a[7][5] * k5 + a[7][6] * k6),
    )
    k8 = run(
        instructions,
        memory,
        y
        + h
        * (a[8][0] * k0 + a[8][3] * k3 + a[8][4] * k4 + a[8][5] * k5 + a[8][6] * k6 + a[8][7] * k7),
    )
    k9 = run(
        instructions,
        memory,
        y
        + h
        * (
            a[9][0] * k0
            + a[9][3] * k3
            + a[9][4] * k4
            + a[9][5] * k5
            + a[9][6] * k6
            + a[9][7] * k7
            + a[9][8] * k8
        ),
    )
    k10 = run(
        instructions,
        memory,
        y
        + h
        * (
            a[10][0] * k0
            + a[10][3] * k3
            + a[10][4] * k4
            + a[10][5] * k5
            + a[10][6] * k6
            + a[10][7] * k7
            + a[10][8] * k8
            + a[10][9] * k9
        ),
    )
    k11 = run(
        instructions,
        memory,
        y
        + h
        * (
            a[11][0] * k0
            + a[11][3] * k3
            + a[11][4] * k4
            + a[11][5] * k5
            + a[11][6] * k6
            + a[11][7] * k7
            + a[11][8] * k8
            + a[11][9] * k9
            + a[11][10] * k10
        ),
    )
    k[5], k[6], k[7], k[8], k[9], k[10], k[11] = k5, k6, k7, k8, k9, k10, k11
    if not math.isfinite(k1 + k2 + k3 + k4 + k5 + k6 + k7 + k8 + k9 + k10 + k11):
        return math.nan
    return y + h * (
        a[12][0] * k0
        + a[12][5] * k5
        + a[12][6] * k6
        + a[12][7] * k7
        + a[12][8] * k8
        + a[12][9] * k9
        + a[12][10] * k10
        + a[12][11] * k11
    )


@numba.njit(nogil=True, error_model="numpy")
def _relative_error(k, h, scale):
    """The estimated error of a step in units of the tolerance."""
    error_3, error_5 = 0.0, 0.0
    for j in range(12):
        error_3 += _E3[j] * k[j]
        error_5 += _E5[j] * k[j]
    square_3, square_5 = error_3 * error_3, error_5 * error_5
    denominator = square_5 + 0.01 * square_3
    if denominator <= 0.0:
        return 0.0
    return h * square_5 / (scale * math.sqrt(denominator))


@numba.njit(nogil=True, error_model="numpy")
def _fill(instructions, memory, k, y, new, h, scale, start, t, out):
    """Writes the dense output of a step at times t; False where it is not good.

    Three more slopes make a polynomial of degree 7 in the share of the step.
    """
    for stage in range(13, 16):
        k[stage] = _slope(instructions, memory, k, stage, y, h)
    change = new - y
    c1 = h * k[0] - change
    c2 = change - h * k[12] - c1
    c3, c4, c5, c6 = 0.0, 0.0, 0.0, 0.0
    for j in range(16):
        c3 += h * _D[0, j] * k[j]
        c4 += h * _D[1, j] * k[j]
        c5 += h * _D[2, j] * k[j]
        c6 += h * _D[3, j] * k[j]

    # The polynomial and its derivative, from the inside outwards.
    x, z = _DEFECT_AT, 1.0 - _DEFECT_AT
    value, derivative = c5 + x * c6, c6
    value, derivative = c4 + z * value, z * derivative - value
    value, derivative = c3 + x * value, x * derivative + value
    value, derivative = c2 + z * value, z * derivative - value
    value, derivative = c1 + x * value, x * derivative + value
    value, derivative = change + z * value, z * derivative - value
    value, derivative = y + x * value, x * derivative + value
    defect = abs(derivative - h * run(instructions, memory, value))
    if not defect <= _MAX_DEFECT * scale:  # So NaN fails too.
        return False

    for i in range(t.size):
        x = (t[i] - start) / h
        z = 1.0 - x
        out[i] = y + x * (change + z * (c1 + x * (c2 + z * (c3 + x * (c4 + z * (c5 + x * c6))))))
    return True


@numba.njit(nogil=True, error_model="numpy")
def _first_step(instructions, memory, y, slope, rtol, atol):
    """A step so short that an explicit Euler step would be about accurate."""
    scale = atol + rtol * abs(y)
    size, speed = abs(y) / scale, abs(slope) / scale
    h = 0.01 * size / speed if size > 1e-5 and speed > 1e-5 else 1e-6
    curvature = abs(run(instructions, memory, y + h * slope) - slope) / (scale * h)
    fastest = max(speed, curvature)
    if not math.isfinite(fastest):
        return h
    longer = (0.01 / fastest) ** 0.125 if fastest > 1e-15 else max(1e-6, 1e-3 * h)
    return min(100.0 * h, longer)


@numba.njit(nogil=True, error_model="numpy")
def _explodes(instructions, memory, y, slope, time_left):
    """Whether y, moving away from 0, surely reaches infinity within the time left.

    That is so where f/y keeps growing from one sample to the next: then the way
    from each to the next takes at most the time it takes at the former's speed.
    """
    speed = slope / y
    time = 0.0
    for _ in range(_EXPLOSION_SAMPLES):
        time += (_EXPLOSION_RATIO - 1.0) / speed
        if not time < time_left:
            return False
        y *= _EXPLOSION_RATIO
        faster = run(instructions, memory, y) / y
        if faster == math.inf:
            return True
        if not faster > _EXPLOSION_GROWTH * speed:
            return False
        speed = faster
    # What is left is shorter than a geometric series.
    rest = (_EXPLOSION_RATIO - 1.0) / speed / (1.0 - 1.0 / _EXPLOSION_GROWTH)
    return time + rest < time_left


@numba.njit(nogil=True, error_model="numpy")
def _integrate(instructions, memory, k, y, t, rtol, atol, max_steps, out):
    """Solves for one initial value; returns the status and the number of steps."""
    now, end = t[0], t[-1]
    out[0] = y
    filled = 1
    k[0] = run(instructions, memory, y)
    if not math.isfinite(k[0]):
        return FAILED, 0
    if t.size == 1:
        return SUCCESS, 0
    h = _first_step(instructions, memory, y, k[0], rtol, atol)
    longest = _LONGEST_STEP * (end - now)
    max_factor = _MAX_FACTOR
    fast = 10.0 * abs(k[0])
    for steps in range(1, max_steps + 1):
        if k[0] == 0.0:
            out[filled:] = y
            return SUCCESS, steps - 1
        h = min(h, longest)
        then = now + h
        if now + 1.01 * h >= end:
            h, then = end - now, end
        if not h > 4.0 * _EPSILON * abs(now) or h < 1e-30:
            return FAILED, steps - 1

        new = _step(instructions, memory, k, y, h)
        k[12] = run(instructions, memory, new)
        stop = filled
        scale = atol + rtol * max(abs(y), abs(new))
        near = max(_REST * scale, 4.0 * _EPSILON * abs(new))
        factor, accepted = _RETRY_FACTOR, False
        if math.isfinite(new) and math.isfinite(k[12]):
            error = _relative_error(k, h, scale)
            if not error <= 1.0:
                factor = max(_MIN_FACTOR, _SAFETY * error**-0.125)
            elif k[0] * k[12] >= 0.0:
                factor = _SAFETY * error**-0.125 if error > 0.0 else max_factor
                while stop < t.size and t[stop] <= then:
                    stop += 1
                accepted = stop == filled or _fill(
                    instructions, memory, k, y, new, h, scale, now, t[filled:stop], out[filled:stop]
                )
                if not accepted:
                    factor = _RETRY_FACTOR
            elif abs(new - y) <= near:  # The rest point lies between the two.
                out[filled:] = y
                return SUCCESS, steps
        if not accepted:
            h *= factor
            max_factor = 1.0
            continue

        if abs(k[12]) < abs(k[0]):
            beyond = run(instructions, memory, new + math.copysign(near, k[12]))
            if not math.isfinite(beyond):
                return FAILED, steps
            if beyond * k[12] <= 0.0:
                out[stop:] = new
                return SUCCESS, steps
        elif abs(k[12]) > fast and new * k[12] > 0.0:
            if _explodes(instructions, memory, new, k[12], end - then):
                return FAILED, steps
            fast = 4.0 * abs(k[12])
        if stop == t.size:
            return SUCCESS, steps
        y, now, filled = new, then, stop
        k[0] = k[12]
        h *= min(max_factor, factor)
        max_factor = _MAX_FACTOR
    return TOO_MANY_STEPS, max_steps


def _compile_for(machine: str):
    """The compiled solver.

    Numba's cache on disk knows when this file changes, but not when the machine
    does, which is compiled in. It does look at the variables of a closure.
    """

    @numba.njit(nogil=True, cache=True, error_model="numpy")
    def integrate(instructions, memory, initial_values, t, rtol, atol, max_steps):
        machine  # noqa: B018
        memory = memory.copy()
        k = np.zeros(16)
        y = np.empty((initial_values.size, t.size))
        status = np.empty(initial_values.size, np.int64)
        steps = np.empty(initial_values.size, np.int64)
        for i in range(initial_values.size):
            status[i], steps[i] = _integrate(
                instructions, memory, k, initial_values[i], t, rtol, atol, max_steps, y[i]
            )
            if status[i] == SUCCESS and not np.isfinite(y[i]).all():
                status[i] = FAILED
            if status[i] != SUCCESS:
                y[i] = math.nan
        return y, status, steps

    return integrate


_integrate_all = _compile_for(FINGERPRINT)


@dataclasses.dataclass(frozen=True, eq=False)
class Solutions:
    """Solutions of one equation.

    Attributes:
      y: shape [n, time]; rows of NaN where there is none.
      status: SUCCESS, FAILED or TOO_MANY_STEPS, shape [n].
      steps: steps taken or tried, shape [n].
    """

    y: Float[np.ndarray, "n time"]
    status: Int64[np.ndarray, " n"]
    steps: Int64[np.ndarray, " n"]


def integrate(
    program: Program,
    initial_values: Float[np.ndarray, " n"],
    t: Float[np.ndarray, " time"],
    *,
    rtol: float,
    atol: float,
    max_steps: int,
) -> Solutions:
    """The solutions of dy/dt = f(y) from each initial value at t[0].

    Releases the GIL, so threads share the cores. What is computed for an initial
    value does not depend on the others.

    Args:
      program: f.
      initial_values: shape [n].
      t: increasing times, shape [time].
      rtol, atol: tolerances; a step uses less of them where that is cheap.
      max_steps: steps allowed for one solution, whatever their number of times.
    """
    results = _integrate_all(
        program.instructions,
        program.memory,
        np.ascontiguousarray(initial_values, np.float64),
        np.ascontiguousarray(t, np.float64),
        max(_RELATIVE_SHARE * rtol, _MIN_RTOL),
        float(atol),
        int(max_steps),
    )
    return Solutions(*results)
