package main

import "github.com/spf13/cobra"

func (a *app) doctorCommand() *cobra.Command { return &cobra.Command{Use: "doctor"} }
func (a *app) gateCommand() *cobra.Command   { return &cobra.Command{Use: "gate"} }
func (a *app) docsCommand() *cobra.Command   { return &cobra.Command{Use: "docs", Hidden: true} }
