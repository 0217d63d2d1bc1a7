module quorate.dev/quorate/sandbox/build/probe

go 1.26.0
