# choose-port: use port 29501, which is free
# port 29500 is in use by python (pid 7), but it is the default of the launchers
#   add --master-port 29501 to the launch command
