module bench

go 1.19

require optima v0.0.0

replace optima => ../../../bindings/go
