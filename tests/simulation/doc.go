// Package simulation runs the whole system in virtual time: simulated servers that execute the
// product's own T-SQL, two controllers with the product's observe → decide → state → agops engine, the
// rounds of the product's instance managers, an API server, kubelets, clients, and faults by a seed.
// A checker holds every run against I1–I5 of the safety design.
//
// One run lives in one bubble of testing/synctest. Nothing in it happens at the same instant: every
// message, answer and event of the world has an instant of its own, drawn from the seed and from who
// asks whom for the how-many-eth time. So one goroutine runs at a time, the product's code needs no
// change, and a seed replays exactly. docs/contributing/simulation.md tells how to run and read it.
package simulation
