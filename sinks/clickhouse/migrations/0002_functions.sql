-- Functions belong to the server, not to the database.

-- The aggregate of rows of item_viewers that the other functions take.
CREATE OR REPLACE FUNCTION tidemark_union AS viewers -> groupUniqArrayArray(viewers);

-- Whether the registers count: some part had no tokens, or there are too many.
CREATE OR REPLACE FUNCTION tidemark_is_dense AS seen -> (length(seen) > 1024 OR arrayMax(seen) >= 67108864);

-- Register and rank of everything in seen, as register * 64 + rank, ascending. Of a token
-- the register is above the lowest 12 bits; of those the highest says whether the others
-- are the zeros that follow 11 zeros, or begin with the zeros.
CREATE OR REPLACE FUNCTION tidemark_registers AS seen -> arraySort(arrayMap(v -> toUInt32(if(v >= 67108864,
        v - 67108864,
        bitShiftRight(v, 12) * 64 + if(bitAnd(v, 2048) > 0, bitAnd(v, 2047) + 11, 11 - bitCount(roundToExp2(bitAnd(v, 2047)) - 1)))),
    seen));

-- LogLog-Beta for 2^14 registers, with the polynomial of the API, of a
-- tidemark_registers: n registers are not zero, and of each the highest rank counts, which
-- is the last. The lambdas over one element are there to name values: a function's body
-- is put in the place of its call, and what stands in it twice is planned twice.
CREATE OR REPLACE FUNCTION tidemark_estimate AS registers -> arrayMap(ranks -> arrayMap((n, z) ->
    toUInt64(floor(0.5 + 11817.000968551936 * n
        / (16384 - n + arraySum(rank -> 1 / bitShiftLeft(toUInt64(1), rank), ranks)
           - 0.371009760230692 * (16384 - n)
           + z * (0.00978811941207509 + z * (0.185796293324165 + z * (0.203015527328432
             + z * (-0.116710521803686 + z * (0.0431106699492820 + z * (-0.00599583540511831
             + z * 0.000449704299509437))))))))),
    [length(ranks)], [log1p(16384 - length(ranks))])[1],
    [arrayMap(r -> bitAnd(r, 63), arrayFilter((r, next) -> bitShiftRight(r, 6) != bitShiftRight(next, 6),
        registers, arrayShiftLeft(registers, 1, toUInt32(4294967295))))])[1];

-- How many different viewers there were, and the bounds, as the API says it: the
-- tuple (viewers, low, high). seen is a tidemark_union, reached the sum of reached over
-- the same rows of item_minutes: there are never more viewers than events that reached
-- them.
CREATE OR REPLACE FUNCTION tidemark_number AS (seen, reached) -> arrayMap((dense, n) -> (
        least(if(dense, greatest(n, 1025), n), reached),
        least(if(dense, greatest(toUInt64(floor(n / 1.015925)), 1025), n), reached),
        least(if(dense, greatest(toUInt64(ceil(n / 0.984075)), 1025), n), reached)),
    [tidemark_is_dense(seen)],
    [if(tidemark_is_dense(seen), tidemark_estimate(tidemark_registers(seen)), length(seen))])[1];

-- The three one by one; a query that wants several is faster by tidemark_number.
CREATE OR REPLACE FUNCTION tidemark_viewers AS (seen, reached) -> tupleElement(tidemark_number(seen, reached), 1);
CREATE OR REPLACE FUNCTION tidemark_viewers_low AS (seen, reached) -> tupleElement(tidemark_number(seen, reached), 2);
CREATE OR REPLACE FUNCTION tidemark_viewers_high AS (seen, reached) -> tupleElement(tidemark_number(seen, reached), 3);

-- Whether a row of item_viewers is among the fewest that cover a range of time, its
-- end not included: days where they lie inside it, then hours, then minutes. The range
-- is moved outward to whole minutes.
CREATE OR REPLACE FUNCTION tidemark_covers AS (level, start, since, until) -> (
    level = 'day'
        AND start >= toStartOfDay(toStartOfMinute(toDateTime(since, 'UTC')) + 86399)
        AND start < toStartOfDay(toStartOfMinute(toDateTime(until, 'UTC') + 59))
    OR level = 'hour'
        AND start >= toStartOfHour(toStartOfMinute(toDateTime(since, 'UTC')) + 3599)
        AND start < toStartOfHour(toStartOfMinute(toDateTime(until, 'UTC') + 59))
        AND NOT (start >= toStartOfDay(toStartOfMinute(toDateTime(since, 'UTC')) + 86399)
            AND start < toStartOfDay(toStartOfMinute(toDateTime(until, 'UTC') + 59)))
    OR level = 'minute'
        AND start >= toStartOfMinute(toDateTime(since, 'UTC'))
        AND start < toStartOfMinute(toDateTime(until, 'UTC') + 59)
        AND NOT (start >= toStartOfHour(toStartOfMinute(toDateTime(since, 'UTC')) + 3599)
            AND start < toStartOfHour(toStartOfMinute(toDateTime(until, 'UTC') + 59))));
